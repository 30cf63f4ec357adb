import { z } from 'zod'
import type { FieldType } from '../domain/records/field-types.ts'
import type { Field, ValueOf } from '../domain/records/record.ts'

/** Field of answers: a field of a record, or a value that is made of the object. */
type AnswerField = Pick<Field, 'type' | 'as' | 'about' | 'shown' | 'default'> & {
  readonly of?: (object: never) => unknown
}
type AnswerFields = Readonly<Record<string, AnswerField>>
type Audience = 'holder' | 'admin'

type AnswerName<F, Name> = F extends { readonly as: infer As extends string } ? As : Name

type ShownTo<F, A extends Audience> = F extends { readonly shown: infer To } ? (To extends A ? F : never) : F

type Answer<F extends AnswerFields, A extends Audience> = {
  [Name in keyof F as ShownTo<F[Name], A> extends never ? never : AnswerName<F[Name], Name>]: ValueOf<F[Name]>
}

type Shape<Values> = { [Name in keyof Values]: z.ZodType<Values[Name]> }

/** Returns the schema of answers with these fields, in their order, and the function that makes them. */
export function answersOf<const F extends AnswerFields, A extends Audience>(fields: F, audience: A) {
  const shown = Object.entries<AnswerField>(fields)
    .filter(([, { shown }]) => shown === undefined || shown === audience)
    .map(([field, one]) => ({ ...one, field, name: one.as ?? field }))
  const shape = Object.fromEntries(shown.map((one) => [one.name, schemaOf(one)]))
  return {
    schema: z.object(shape as unknown as Shape<Answer<F, A>>),
    answer: (object: object): Answer<F, A> => {
      const values = object as Readonly<Record<string, unknown>>
      const answer: Record<string, unknown> = {}
      for (const { name, field, of, default: otherwise } of shown)
        answer[name] = of ? of(object as never) : (values[field] ?? otherwise)
      return answer as Answer<F, A>
    },
  }
}

function schemaOf({ type, about }: AnswerField): z.ZodType {
  const plain = plainSchema(type)
  const schema = type.isNullable ? plain.nullable() : plain
  return about === undefined ? schema : schema.meta({ description: about })
}

function plainSchema({ json, choices }: FieldType): z.ZodType {
  if (choices?.length === 1) return z.literal(choices[0] as number)
  if (choices && json === 'string') return z.enum(choices as string[])
  return { boolean: z.boolean, integer: z.int, string: z.string, any: z.unknown }[json]()
}
