import { z } from 'zod'
import { MAX_TIME_S } from '../domain/calendar.ts'
import { MAX_QUOTA_USD } from '../domain/options.ts'
import type { Settings } from '../domain/settings.ts'
import { fitsInBytes, TEXT_BYTE_LIMITS } from '../domain/text-length.ts'
import { GatewayError, invalidInput } from '../errors.ts'

/** Validates input. Throws `invalid_request` with a message that names the first invalid fields. */
export function readInput<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const read = schema.safeParse(given)
  if (read.success) return read.data
  throw invalidInput(
    read.error.issues.map(({ path, message }) =>
      path.length === 0 ? message : `${path.join('.')}: ${message}`,
    ),
  )
}

/**
 * Throws `invalid_request` if the lists and objects of the input have more than `max` values together. It is checked
 * before the schema, which reads every list to its end and makes an error for each invalid entry.
 */
export function requireFewValues(given: unknown, max: number): void {
  const pending = [given]
  let count = 0
  for (const part of pending) {
    if (typeof part !== 'object' || part === null) continue
    const inner: readonly unknown[] = Array.isArray(part) ? part : Object.values(part)
    count += inner.length
    if (count > max) throw invalidInput([`expected at most ${max} values in lists and objects`])
    for (const one of inner) pending.push(one)
  }
}

const USER_EXPECTED = 'expected the id or the name of a user'

/** A user, by id or by name. */
export const userField = z
  .union([z.int(), textField(USER_EXPECTED)], { error: unionErrorMessage(USER_EXPECTED) })
  .refine((given) => (typeof given === 'number' ? given > 0 : given !== ''), { error: USER_EXPECTED })

/** The input of operations on one user. */
export const userInput = z.object({ user: userField }, { error: 'expected an object that names a user' })

/** A text of at most `bytes` bytes. `expected` is the error message if the value is not a text. */
export function textField(expected: string, bytes: number = TEXT_BYTE_LIMITS.plain) {
  return z
    .string({ error: expected })
    .refine((text) => fitsInBytes(text, bytes), { error: tooLongMessage(bytes), abort: true })
    .meta({ 'x-max-bytes': bytes })
}

/** A JSON value of any type, whose texts and names of members have at most `bytes` bytes each. */
export function anyField(bytes: number = TEXT_BYTE_LIMITS.plain) {
  return z
    .unknown()
    .refine((value) => textsOf(value).every((text) => fitsInBytes(text, bytes)), {
      error: tooLongMessage(bytes),
    })
    .meta({ 'x-max-bytes': bytes })
}

/**
 * Returns the error message for a union that includes a text: that the text is too long, or else `expected`.
 */
export function unionErrorMessage(expected: string) {
  return ({ errors = [] }: { readonly errors?: readonly (readonly { readonly message: string }[])[] }) =>
    errors.flat().find(({ message }) => message.endsWith(' bytes'))?.message ?? expected
}

/** The error message for a text that is longer than this many bytes. */
export function tooLongMessage(bytes: number): string {
  return `expected at most ${bytes} bytes`
}

/** All texts in a JSON value, including names of members. */
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

/** A whole number in a query; an empty parameter counts as missing. */
export function wholeNumber() {
  const error = 'expected a whole number of at most 15 digits'
  return z
    .string()
    .regex(/^(?:\d{1,15})?$/, { error })
    .transform((text) => (text === '' ? undefined : Number(text)))
    .meta({ type: 'integer', minimum: 0 })
    .optional()
}

/** A time in a query, in Unix seconds; an empty parameter counts as missing. */
export function unixSeconds() {
  return wholeNumber().refine((time) => time === undefined || time <= MAX_TIME_S, {
    error: 'expected a time in Unix seconds, up to the year 9999',
  })
}

/** A text in a query, for an exact comparison; an empty parameter counts as missing. */
export function equalityFilterField() {
  return z
    .string()
    .max(2000, { error: 'expected at most 2000 characters' })
    .transform((text) => (text === '' ? undefined : text))
    .optional()
}

const SEVERAL = new WeakSet<object>()

/** Whether a query parameter with this schema may be given several times. */
export function isRepeatable(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && SEVERAL.has(schema)
}

/** Maximum number of values of a parameter that may be given several times. */
const MAX_SEVERAL = 100

/**
 * A query parameter that may be given several times; one of its texts must match. Empty values count as
 * missing.
 */
export function textsFilter() {
  const schema = several(textFilter)
    .transform((values) => (values.length === 0 ? undefined : values))
    .optional()
  SEVERAL.add(schema)
  return schema
}

const textFilter = textField('expected a text').max(2000, { error: 'expected at most 2000 characters' })

/**
 * A query parameter that may be given several times; one of its ids must match. Empty values count as
 * missing.
 */
export function idsFilter() {
  const schema = several(textField('expected an id').regex(/^\d{0,15}$/, { error: 'expected an id' }))
    .transform((values) => (values.length === 0 ? undefined : values.map(Number)))
    .optional()
  SEVERAL.add(schema)
  return schema
}

function several(value: z.ZodString) {
  return z
    .union([value, z.array(value).max(MAX_SEVERAL, { error: `expected at most ${MAX_SEVERAL} values` })], {
      // The error of the alternative that the client meant: one text, or a list of texts.
      error: ({ errors: [ofText = [], ofList = []], input }) =>
        (Array.isArray(input) ? ofList : ofText)[0]?.message ?? 'expected a text',
    })
    .transform((given): readonly string[] => (typeof given === 'string' ? [given] : given).filter(Boolean))
}

/** A query parameter with one or more of the names `choices`, separated by commas. */
export function namesFilter(choices: readonly string[]) {
  const expected = `expected ${choices.join(', ')}`
  const schema = several(textFilter)
    .transform((values) => values.flatMap((value) => value.split(',')))
    .refine((names) => names.every((name) => choices.includes(name)), { error: expected })
    .transform((names) => (names.length === 0 ? undefined : names))
    .optional()
  SEVERAL.add(schema)
  return schema
}

/**
 * Schemas for ids (whole numbers from 1 to 2^53 − 1): in JSON, in a path, and as a list in a body. `kind`
 * names the object.
 */
export function idFields(kind: 'token' | 'channel', notAList: string) {
  const error = `expected the id of a ${kind}`
  const id = z.int({ error }).positive({ error })
  const written = z
    .string()
    .regex(/^[1-9]\d{0,15}$/, { error })
    .transform(Number)
    .pipe(id)
  // The list is validated as a whole, so that a thousand invalid ids cause only one error.
  const ids = z
    .array(z.unknown().meta({ type: 'integer' }), { error: notAList })
    .refine((given) => given.length > 0 && given.every((one) => id.safeParse(one).success), {
      error: `expected ids of ${kind}s, at least one`,
    })
    .transform((given) => given as number[])
  return {
    id,
    written,
    path: z.object({ id: written }),
    body: z.object({ ids }, { error: 'expected an object with ids' }),
  }
}

/** Maximum number of objects that one request may delete; `docs/api.md: Endpoints`. */
export const MAX_DELETED_AT_ONCE = 1000

/** Throws `batch_too_many` for a list with more than `limit` ids. `what` says what happens to their objects. */
export function requireFewIds(ids: readonly number[], limit: number, what: string): void {
  if (ids.length <= limit) return
  throw new GatewayError('batch_too_many', `ids: at most ${limit} ${what} at once, not ${ids.length}`, {
    details: { limit, given: ids.length },
  })
}

/** The maximum quota, in quota units, at the present `quota_per_unit`. */
export function maxQuota({ options }: Settings): number {
  return MAX_QUOTA_USD * options.quota_per_unit
}

/**
 * Throws `invalid_request` if a quota is below `min` or above the maximum; `field` is its name in the
 * message.
 */
export function requireQuota(field: string, quota: number, min: number, settings: Settings): void {
  const max = maxQuota(settings)
  if (quota >= min && quota <= max) return
  throw new GatewayError(
    'invalid_request',
    `${field}: expected whole quota units from ${min} to ${max}, not ${quota}`,
  )
}

/** The id of an object in a path, as digits. */
export function idText(error: string) {
  return z
    .string()
    .regex(/^\d{1,16}$/, { error })
    .transform(Number)
    .refine((id) => Number.isSafeInteger(id) && id > 0, { error })
}
