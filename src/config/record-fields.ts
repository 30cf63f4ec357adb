import type { z } from 'zod'
import type { FieldType } from '../domain/records/field-types.ts'
import type { Field, Fields, NamesWith, ValueOf } from '../domain/records/record.ts'
import { dictionary, type Field as Reader, flag, list, oneOf, scalarOf } from './fields.ts'

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

function declaredField(type: FieldType, expected?: Field['declared']): Reader<unknown> {
  const { json, items, bounds } = type
  if (json === 'boolean') return flag
  if (bounds.enum) return oneOf(bounds.enum as readonly (string | number)[])
  if (!items) return scalarOf(type, typeof expected === 'string' ? expected : type.expected)
  const entry = declaredField(items)
  return json === 'array' ? list(entry, type.expected, bounds.minItems) : dictionary(entry, type.expected)
}
