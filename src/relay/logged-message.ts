/** Characters of an upstream's message that are logged. */
const LONGEST = 500
/** As many characters in a row as a message may have in common with the request. */
const MOST_IN_COMMON = 11
/** Half of a run that is too long: a whole such piece, at a multiple of its length, lies in each of them. */
const PIECE = (MOST_IN_COMMON + 1) / 2
/** Bytes of a request that are looked through: a larger one would hold up other calls. */
const LARGEST_BODY = 1024 * 1024

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * An upstream's message, redacted already, as it may be logged: without what it repeats of the texts of `request`, the
 * caller's JSON, with control and formatting characters escaped, 500 characters at most. Undefined where there is none, or
 * where the request is too large to be compared with it.
 */
export function loggedMessage(message: string | undefined, request: Buffer): string | undefined {
  if (message === undefined || request.length > LARGEST_BODY) return undefined
  const texts = textsOf(request)
  if (!texts) return undefined
  return withoutEcho(message, texts).replace(INVISIBLE, escaped).slice(0, LONGEST).toWellFormed()
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return `\\u${code > 0xffff ? `{${code.toString(16)}}` : code.toString(16).padStart(4, '0')}`
}

// All strings of the request but the model's name, which operators need; names of fields are none.
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

function withoutEcho(message: string, texts: readonly string[]): string {
  const runs = new Map<string, number[]>()
  const pieces = new Set<string>()
  const length = MOST_IN_COMMON + 1
  for (let at = 0; at + PIECE <= message.length; at++) pieces.add(message.slice(at, at + PIECE))
  for (let at = 0; at + length <= message.length; at++) {
    const run = message.slice(at, at + length)
    const places = runs.get(run)
    if (places) places.push(at)
    else runs.set(run, [at])
  }
  const isEcho = new Uint8Array(message.length)
  for (const text of texts) {
    for (let at = 0; at + PIECE <= text.length; at += PIECE) {
      if (!pieces.has(text.slice(at, at + PIECE))) continue
      for (let from = Math.max(0, at - PIECE); from <= at; from++) {
        const run = text.slice(from, from + length)
        for (const place of runs.get(run) ?? []) isEcho.fill(1, place, place + length)
        runs.delete(run)
      }
    }
  }
  return cutOut(message, isEcho)
}

function cutOut(message: string, isCut: Uint8Array): string {
  let kept = ''
  for (let at = 0; at < message.length; at++) {
    if (!isCut[at]) kept += message[at]
    else if (at === 0 || !isCut[at - 1]) kept += '[…]'
  }
  return kept
}
