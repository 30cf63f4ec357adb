import type { TypedRequest } from './typed-request.ts'
import { withoutUndefined } from './typed-request.ts'

/** The voice if the user typed none; the endpoint requires one. */
export const USUAL_VOICE = 'alloy'

/** The body of a request for a picture. */
export function imagesBody({ model, question, size }: TypedRequest): object {
  return { model, prompt: question.text, ...withoutUndefined({ size }) }
}

/** The body of a request for speech. */
export function speechBody({ model, question, voice }: TypedRequest): object {
  return { model, input: question.text, voice: voice ?? USUAL_VOICE }
}

/** The body of a request for embeddings; each line of the message is a text. */
export function embeddingsBody({ model, question }: TypedRequest): object {
  const texts = question.text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return { model, input: texts.length === 1 ? texts[0] : texts }
}
