import { withoutEcho } from './echo.ts'

/** Characters of an upstream's message that are logged. */
const MAX_LENGTH = 500
/** Largest request that is searched: a larger one would delay other calls. */
const MAX_BODY_BYTES = 1024 * 1024

/** Control and formatting characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * An upstream's redacted message for the log: without what it repeats of the texts of `request`, the
 * client's JSON; with control and formatting characters escaped; 500 characters at most. Undefined where
 * there is none, or where the request is too large to be compared with it.
 */
export function loggedMessage(message: string | undefined, request: Buffer): string | undefined {
  if (message === undefined || request.length > MAX_BODY_BYTES) return undefined
  const texts = textsOf(request)
  if (!texts) return undefined
  return withoutEcho(message, texts).replace(INVISIBLE, escaped).slice(0, MAX_LENGTH).toWellFormed()
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return `\\u${code > 0xffff ? `{${code.toString(16)}}` : code.toString(16).padStart(4, '0')}`
}

// All strings of the request, without names of fields and the model's name, which operators need.
function textsOf(request: Buffer): string[] | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(request.toString())
  } catch {
    return undefined
  }
  const texts: string[] = []
  const values: unknown[] = Object.entries(parsed ?? {}).map(([name, value]) =>
    name === 'model' ? null : value,
  )
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'object' && value !== null)
      for (const part of Object.values(value)) values.push(part)
  }
  return texts
}
