import { z } from 'zod'
import type { Field, JsonOf } from '../domain/records/record.ts'
import { baseOf } from './record-schemas.ts'

/** Field of responses: a field of a record, or a value computed from the object. */
type AnswerField = Pick<Field, 'type' | 'as' | 'about' | 'shown' | 'secret' | 'default'> & {
  readonly of?: (object: never) => unknown
}

type AnswerFields = Readonly<Record<string, AnswerField>>

/** Reader of responses; administrators see more fields. */
type Audience = 'holder' | 'admin'

type HiddenFrom<A extends Audience> =
  | { readonly secret: true | 'held' }
  | { readonly shown: false | Exclude<Audience, A> }

type Answer<F extends AnswerFields, A extends Audience> = {
  readonly [Name in keyof F as F[Name] extends HiddenFrom<A>
    ? never
    : F[Name] extends { readonly as: infer As extends string }
      ? As
      : Name]: JsonOf<F[Name]>
}

/** Returns the schema of responses with these fields, in order, and the function that builds them. */
export function answersOf<const F extends AnswerFields, A extends Audience>(fields: F, audience: A) {
  const shown = Object.entries<AnswerField>(fields)
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

function schemaOf({ type, about }: AnswerField): z.ZodType {
  const choices = type.bounds.enum as readonly string[] | undefined
  const isListed = choices && (type.json === 'string' || choices.length === 1)
  const plain = isListed ? z.literal(choices) : baseOf(type)
  const schema: z.ZodType = type.isNullable ? plain.nullable() : plain
  return about === undefined ? schema : schema.meta({ description: about })
}
