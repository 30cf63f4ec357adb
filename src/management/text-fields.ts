import { z } from 'zod'
import { isWithin, TEXT_BYTES } from '../domain/text-bytes.ts'

/** A text of at most `bytes` bytes. `expected` is the error if another type is given. */
export function textField(expected: string, bytes: number = TEXT_BYTES.plain) {
  return z
    .string({ error: expected })
    .refine((text) => isWithin(text, bytes), { error: tooLong(bytes), abort: true })
    .meta({ 'x-max-bytes': bytes })
}

/** A JSON value of any type, whose texts and names of members have at most `bytes` bytes each. */
export function anyField(bytes: number = TEXT_BYTES.plain) {
  return z
    .unknown()
    .refine((value) => textsOf(value).every((text) => isWithin(text, bytes)), { error: tooLong(bytes) })
    .meta({ 'x-max-bytes': bytes })
}

/** The message of a union with a text: that the text is too long if it is, otherwise `expected`. */
export function orTooLong(expected: string) {
  return ({ errors = [] }: { readonly errors?: readonly (readonly { readonly message: string }[])[] }) =>
    errors.flat().find(({ message }) => message.endsWith(' bytes'))?.message ?? expected
}

/** The message for a text with more bytes. */
export function tooLong(bytes: number): string {
  return `expected at most ${bytes} bytes`
}

/** The texts within a JSON value, including names of members. */
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
