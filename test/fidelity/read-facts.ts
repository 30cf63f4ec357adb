import { chatFacts } from './chat-facts.ts'
import { DONE, type Dialect, type Facts, type Json } from './facts.ts'
import { geminiFacts } from './gemini-facts.ts'
import { messagesFacts } from './messages-facts.ts'
import { responsesFacts } from './responses-facts.ts'

/** Reads a response of each dialect: the events of a stream, or a whole response as the only event. */
const READERS: Readonly<Record<Dialect, (events: readonly Json[], whole: boolean) => Facts>> = {
  chat: chatFacts,
  messages: messagesFacts,
  responses: responsesFacts,
  gemini: geminiFacts,
}

/** The facts of a whole response. */
export function wholeFacts(dialect: Dialect, body: string): Facts {
  const value = JSON.parse(body) as Json | Json[]
  return READERS[dialect](Array.isArray(value) ? value : [value], true)
}

/** The facts of a stream, which may be cut off between two events. */
export function streamFacts(dialect: Dialect, stream: string): Facts {
  return READERS[dialect](framesOf(stream).flatMap(dataOf), false)
}

/** The frames of an event stream, each with its blank line. */
export function framesOf(stream: string): string[] {
  return stream.split(/(?<=\r?\n\r?\n)/)
}

function dataOf(frame: string): Json[] {
  const data = frame
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).trim())
    .join('\n')
  if (data === '[DONE]') return [DONE]
  return data.startsWith('{') ? [JSON.parse(data) as Json] : []
}
