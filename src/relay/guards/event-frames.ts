import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import type { EventText } from '@sluice/wire/guarded-events'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'

/** Whether a text is the last of its channel in an event that ends the channel. */
export function isLastOf(texts: readonly EventText[], index: number, ends: readonly string[]): boolean {
  const key = texts[index]?.channel?.key
  if (key === undefined || !ends.some((end) => key.startsWith(end))) return false
  return !texts.some((other, at) => at > index && other.channel?.key === key)
}

/** An element of an array as an event. */
export function eventOf(element: Buffer): string {
  return `data: ${element.toString().replace(/\r\n|\n|\r/g, '\ndata: ')}\n\n`
}

/** The data of an event; undefined if it is not a JSON object. */
export function scanned(data: string): ScannedObject | undefined {
  try {
    return scanObject(Buffer.from(data), RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

/** A frame with other data, in one line; its other fields stay. */
export function withData(frame: string, data: string): string {
  const others = frame.split(/\r\n|\n|\r/).filter((line) => line !== '' && !/^data(?::|$)/.test(line))
  return `${[...others, `data: ${data}`].join('\n')}\n\n`
}
