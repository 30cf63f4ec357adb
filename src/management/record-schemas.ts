import { z } from 'zod'
import { type FieldType, describeMismatch, type Stored } from '../domain/records/field-types.ts'
import {
  type Edits,
  type Field,
  type Fields,
  fieldsWith,
  type JsonOf,
  type FieldNamesWith,
} from '../domain/records/record.ts'

/** A schema that does not change the type of a value. */
type Schema<V> = z.ZodType<V, V>

/** The schema of a value's JSON type. `entryOf` returns the schema of the entries of a list or an object. */
function baseOf(
  { json, items }: Pick<FieldType, 'json' | 'items'>,
  params?: { readonly error: string },
  entryOf: (type: never) => z.ZodType = baseOf,
): z.ZodType {
  if (json === 'any') return z.unknown()
  if (json === 'array') return z.array(entryOf(items as never), params)
  if (json === 'object') return z.record(z.string(), entryOf(items as never), params)
  return { boolean: z.boolean, integer: z.int, number: z.number, string: z.string }[json](params)
}

/** The schema of a value that a client sends. For an invalid value, the error says what was expected. */
export function valueSchema<V, C extends Stored, J>(type: FieldType<V, C, J>): Schema<J> {
  return baseOf(type, { error: `expected ${type.expected}` }, valueSchema)
    .superRefine((value, ctx) => {
      const expected = describeMismatch(type, value)
      if (expected !== undefined) ctx.addIssue({ code: 'custom', message: `expected ${expected}` })
    })
    .meta({
      ...type.bounds,
      ...(type.rules[0] && { description: type.rules.map(({ expected }) => expected).join('; ') }),
    }) as unknown as Schema<J>
}

/**
 * Schemas for the fields of a request body that a client can set. An optional field that is null counts as
 * missing.
 */
export function requestBodySchemas<const F extends Fields, const For extends 'new' | 'change'>(
  fields: F,
  usage: For,
) {
  const shape = Object.entries<Field>(fieldsWith(fields, 'edit')).map(([name, { type, isRequired }]) => {
    const schema = valueSchema(type)
    return [name, usage === 'new' && isRequired ? schema : schema.nullish()]
  })
  return Object.fromEntries(shape) as {
    [Name in FieldNamesWith<F, 'edit'>]: readonly [F[Name], For] extends readonly [
      { isRequired: true },
      'new',
    ]
      ? Schema<JsonOf<F[Name]>>
      : z.ZodOptional<z.ZodNullable<Schema<JsonOf<F[Name]>>>>
  }
}

/**
 * Converts the given fields to the form in which they are stored. Null counts as missing, unless the field's
 * type allows it.
 */
export function storedFields<const F extends Fields>(
  fields: F,
  given: { readonly [Name in FieldNamesWith<F, 'edit'>]?: unknown },
): Edits<F> {
  const stored: Record<string, unknown> = {}
  for (const [name, { type }] of Object.entries<Field>(fieldsWith(fields, 'edit'))) {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined && (value !== null || type.isNullable)) stored[name] = type.fromJson(value)
  }
  return stored as Edits<F>
}

/** A field of responses: a field of a record, or a value that `of` computes from the object. */
type ResponseField = Pick<Field, 'type' | 'as' | 'about' | 'shown' | 'secret' | 'default'> & {
  readonly of?: (object: never) => unknown
}

type ResponseFields = Readonly<Record<string, ResponseField>>

/** Who reads a response; administrators see more fields. */
type Audience = 'holder' | 'admin'

type HiddenFrom<A extends Audience> =
  | { readonly secret: true | 'held' }
  | { readonly shown: false | Exclude<Audience, A> }

type Answer<F extends ResponseFields, A extends Audience> = {
  readonly [Name in keyof F as F[Name] extends HiddenFrom<A>
    ? never
    : F[Name] extends { readonly as: infer As extends string }
      ? As
      : Name]: JsonOf<F[Name]>
}

/**
 * Returns the schema of responses with these fields, and a function that makes such a response from an
 * object.
 */
export function declareResponse<const F extends ResponseFields, A extends Audience>(fields: F, audience: A) {
  const shown = Object.entries<ResponseField>(fields)
    .filter(([, { shown = audience, secret }]) => shown === audience && !secret)
    .map(([field, one]) => ({ ...one, field, name: one.as ?? field }))
  const shape = Object.fromEntries(shown.map((one) => [one.name, schemaOf(one)]))
  return {
    schema: z.object(shape as unknown as { [N in keyof Answer<F, A>]: z.ZodType<Answer<F, A>[N]> }),
    answer: (object: object): Answer<F, A> => {
      const values = object as Readonly<Record<string, unknown>>
      const answer: Record<string, unknown> = {}
      for (const { name, field, type, of, default: otherwise } of shown)
        answer[name] = of ? of(object as never) : type.toJson(values[field] ?? otherwise)
      return answer as Answer<F, A>
    },
  }
}

function schemaOf({ type, about }: ResponseField): z.ZodType {
  const choices = type.bounds.enum as readonly string[] | undefined
  const isListed = choices && (type.json === 'string' || choices.length === 1)
  const plain = isListed ? z.literal(choices) : baseOf(type)
  const schema: z.ZodType = type.isNullable ? plain.nullable() : plain
  return about === undefined ? schema : schema.meta({ description: about })
}
