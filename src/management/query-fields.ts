import { z } from 'zod'

/** A whole number in a query; an empty parameter counts as absent. */
export function wholeNumber() {
  const error = 'expected a whole number of at most 15 digits'
  return z
    .string()
    .regex(/^(?:\d{1,15})?$/, { error })
    .transform((text) => (text === '' ? undefined : Number(text)))
    .meta({ type: 'integer', minimum: 0 })
    .optional()
}

/** A text in a query that is compared for equality; an empty parameter counts as absent. */
export function wantedText() {
  return z
    .string()
    .max(2000, { error: 'expected at most 2000 characters' })
    .transform((text) => (text === '' ? undefined : text))
    .optional()
}
