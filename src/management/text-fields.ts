import { z } from 'zod'

/** Bounds of texts that are written over HTTP, in bytes of UTF-8. `docs/api.md: Limits`. */
export const TEXT_BYTES = Object.freeze({
  /** Every text that is none of the others. */
  plain: 2048,
  /** One key of a provider. */
  providerKey: 8192,
  /** The addresses that a token may be used from. */
  addresses: 16_384,
  /** A list, a mapping, several keys, or a system prompt. */
  list: 65_536,
})

/** The bound in JSON Schema, which counts characters alone. */
const BOUND = 'x-max-bytes'

/** A text of at most `bytes` bytes. `expected` is the message where another type is given. */
export function textField(expected: string, bytes: number = TEXT_BYTES.plain) {
  return z
    .string({ error: expected })
    .refine((text) => isWithin(text, bytes), { error: tooLong(bytes), abort: true })
    .meta({ [BOUND]: bytes })
}

/** A JSON value of any type, whose texts and names of members have at most `bytes` bytes each. */
export function anyField(bytes: number = TEXT_BYTES.plain) {
  return z
    .unknown()
    .refine((value) => textsOf(value).every((text) => isWithin(text, bytes)), { error: tooLong(bytes) })
    .meta({ [BOUND]: bytes })
}

/** The message of a union with a text: its bound where that is exceeded, else `expected`. */
export function orTooLong(expected: string) {
  return ({ errors = [] }: { readonly errors?: readonly (readonly { readonly message: string }[])[] }) =>
    errors.flat().find(({ message }) => message.endsWith(' bytes'))?.message ?? expected
}

/** Whether a text has at most `bytes` bytes. */
export function isWithin(text: string, bytes: number): boolean {
  return text.length <= bytes && Buffer.byteLength(text) <= bytes
}

/** The message for a text with more bytes. */
export function tooLong(bytes: number): string {
  return `expected at most ${bytes} bytes`
}

/** The texts within a JSON value, names of members included. */
function textsOf(value: unknown): string[] {
  const texts: string[] = []
  const pending = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (typeof next === 'string') texts.push(next)
    else if (typeof next === 'object' && next !== null) {
      if (!Array.isArray(next)) texts.push(...Object.keys(next))
      for (const part of Object.values(next)) pending.push(part)
    }
  }
  return texts
}
