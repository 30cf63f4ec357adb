import type { z } from 'zod'
import { type FieldType, mismatch } from '../domain/records/field-types.ts'
import type { Field, Fields, NamesWith, ValueOf } from '../domain/records/record.ts'
import { type Field as Reader, flag, oneOf, Refusal, scalar } from './fields.ts'

/** Fields of a record that gateway.yaml may declare; those with a default may be omitted. */
export type DeclaredShape<F extends Fields> = {
  [Name in NamesWith<F, 'declared'>]: z.ZodType<ValueOf<F[Name]>>
}

/**
 * Readers of the fields that are not texts, whole numbers or flags. They are called only for fields that are
 * present.
 */
export type Readers<F extends Fields> = {
  readonly [Name in NamesWith<F, 'declared'> as F[Name]['type']['json'] extends 'any' ? Name : never]: Reader<
    Exclude<ValueOf<F[Name]>, undefined>
  >
}

/** The fields of a record that gateway.yaml may declare, as a schema. */
export function declaredShape<const F extends Fields>(
  fields: F,
  ...[readers = {} as Readers<F>]: keyof Readers<F> extends never ? [] : [Readers<F>]
): DeclaredShape<F> {
  const declared = Object.entries(fields).filter(([, field]) => field.declared)
  return Object.fromEntries(
    declared.map(([name, one]) => {
      const reader = (readers as Readonly<Record<string, Reader<unknown>>>)[name]
      const field = reader ?? declaredField(one.type, one.declared)
      if (one.default !== undefined) return [name, field.default(one.default)]
      return [name, 'default' in one ? field.optional() : field]
    }),
  ) as DeclaredShape<F>
}

function declaredField(type: FieldType, expected: Field['declared']): z.ZodType {
  if (type.json === 'boolean') return flag
  if (type.bounds.enum) return oneOf(type.bounds.enum as readonly (string | number)[])
  const message = typeof expected === 'string' ? expected : type.expected
  return scalar<unknown>(message, ({ value }) => {
    const isDigits = type.json === 'integer' && typeof value === 'string' && /^-?\d{1,16}$/.test(value)
    const given = isDigits ? Number(value) : value
    const unmet = mismatch(type, given)
    if (unmet !== undefined) return new Refusal(unmet === type.expected ? message : unmet)
    return type.normal(given)
  })
}
