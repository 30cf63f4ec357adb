import type { PlaygroundRequest } from './playground-request.ts'
import { withoutUndefined } from './playground-request.ts'

/** The voice if the user typed none; the endpoint requires one. */
export const DEFAULT_VOICE = 'alloy'

/** The body of a request for a picture. */
export function imagesBody({ model, question, size }: PlaygroundRequest): object {
  return { model, prompt: question.text, ...withoutUndefined({ size }) }
}

export function speechBody({ model, question, voice }: PlaygroundRequest): object {
  return { model, input: question.text, voice: voice ?? DEFAULT_VOICE }
}

/** The body of a request for embeddings; each line of the message is a text. */
export function embeddingsBody({ model, question }: PlaygroundRequest): object {
  const texts = question.text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  return { model, input: texts.length === 1 ? texts[0] : texts }
}
