import type { TypedRequest } from './typed-request.ts'
import { withoutUndefined } from './typed-request.ts'

/** The voice where none is typed: a field that the endpoint requires. */
export const USUAL_VOICE = 'alloy'

/** The body of a request for a picture. */
export function imagesBody({ model, question, size }: TypedRequest): object {
  return { model, prompt: question.text, ...withoutUndefined({ size }) }
}

/** The body of a request for speech. */
export function speechBody({ model, question, voice }: TypedRequest): object {
  return { model, input: question.text, voice: voice ?? USUAL_VOICE }
}

/** The body of a request for embeddings: a text for each line. */
export function embeddingsBody({ model, question }: TypedRequest): object {
  const texts = question.text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return { model, input: texts.length === 1 ? texts[0] : texts }
}
