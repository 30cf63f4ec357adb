import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toClosedSchema } from '@sluice/wire/schemas/closed-schema'
import { toGeminiSchema } from '@sluice/wire/schemas/gemini-schema'
import { fromGoogleSchema } from '@sluice/wire/schemas/google-schema'
import { isStrictSchema } from '@sluice/wire/schemas/strict-subset'
import { toToolSchema } from '@sluice/wire/schemas/tool-schema'
import { googleSchemas, schemas, valueFor } from '../generators/schemas.ts'
import { lawRuns } from '../runner/tier.ts'
import { refusalByClaude, refusalByGemini, refusalByOpenAi, refusalOfTool } from './schema-subsets.ts'

const everything = schemas({ constraints: true, recursion: true })
const runs = { numRuns: lawRuns(1000) }
/** For laws that compile validators. */
const compiled = { numRuns: lawRuns(300) }

function validator(schema: unknown): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
  return ajv.compile(schema as object)
}

/** Keywords of a schema that descriptions state in words. */
const IN_WORDS: ReadonlySet<string> = new Set([
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'exclusiveMaximum',
  'multipleOf',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
])

/** What is left of a schema without them: alternatives instead of exactly one, and no constraints. */
function relaxed(schema: unknown): unknown {
  return JSON.parse(JSON.stringify(schema), (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const kept = Object.entries(value).filter(([name]) => !IN_WORDS.has(name))
    return Object.fromEntries(kept.map(([name, one]) => [name === 'oneOf' ? 'anyOf' : name, one]))
  })
}

/** Finds a value that the changed schema allows, but not the original one. */
function wrongValue(original: unknown, changed: unknown, seed: number): unknown {
  const allowed = validator(original)
  const written = validator(changed)
  let state = seed
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state / 2 ** 32
  }
  for (let tries = 0; tries < 20; tries++) {
    const value = valueFor(changed, changed, random)
    if (written(value) && !allowed(value)) return { value }
  }
  return undefined
}

describe('the schema that Anthropic and Bedrock get for structured output', () => {
  test('is always within their documented subset', () => {
    fc.assert(
      fc.property(everything, (schema) => {
        expect(refusalByClaude(JSON.parse(toClosedSchema(JSON.stringify(schema))))).toBeUndefined()
      }),
      runs,
    )
  })

  test('allows only values that the original schema allows, apart from what the descriptions say', () => {
    fc.assert(
      fc.property(schemas({ constraints: true }), fc.nat(), (schema, seed) => {
        const changed = JSON.parse(toClosedSchema(JSON.stringify(schema)))
        // Where alternatives and contradictions are in words, only a reader can tell.
        if (
          / applies: |Constraints: [^"]*\b(?:(?:type|enum|const|items|anyOf|oneOf): |no value)/.test(
            JSON.stringify(changed),
          )
        )
          return
        expect(wrongValue(relaxed(schema), changed, seed)).toBeUndefined()
      }),
      compiled,
    )
  })

  test('is unchanged, byte for byte, if it is in the subset already', () => {
    fc.assert(
      fc.property(everything, (schema) => {
        const once = toClosedSchema(JSON.stringify(schema))
        expect(toClosedSchema(once)).toBe(once)
        const spaced = JSON.stringify(JSON.parse(once), undefined, 1)
        expect(toClosedSchema(spaced)).toBe(spaced)
      }),
      runs,
    )
  })
})

describe('the schema of a tool that has alternatives at its top', () => {
  const alternatives = fc
    .tuple(
      everything,
      fc.constantFrom('anyOf', 'oneOf', 'allOf'),
      fc.array(everything, { minLength: 1, maxLength: 3 }),
    )
    .map(([base, keyword, all]) => ({ ...base, [keyword]: all.map((one) => ({ ...one, $defs: undefined })) }))

  test('becomes one of an object, without a union, a combination or a reference at its top', () => {
    fc.assert(
      fc.property(alternatives, (schema) => {
        const tool = JSON.parse(toToolSchema(JSON.stringify(schema)))
        expect(refusalOfTool(tool)).toBeUndefined()
        const names = new Set(Object.keys(tool.properties))
        for (const one of [schema, ...('anyOf' in schema ? (schema['anyOf'] as object[]) : [])])
          for (const name of Object.keys((one as { properties?: object }).properties ?? {}))
            expect(names).toContain(name)
      }),
      runs,
    )
  })

  test('is unchanged, byte for byte, if it has none', () => {
    fc.assert(
      fc.property(everything, (schema) => {
        const { anyOf: _, ...rest } = schema
        const text = JSON.stringify(rest, undefined, 1)
        expect(toToolSchema(text)).toBe(text)
      }),
      runs,
    )
  })
})

test('a schema that is sent with strict: true to OpenAI is within its documented subset', () => {
  fc.assert(
    fc.property(everything, (schema) => {
      for (const text of [JSON.stringify(schema), withAllRequired(toClosedSchema(JSON.stringify(schema)))])
        if (isStrictSchema(text)) expect(refusalByOpenAi(JSON.parse(text))).toBeUndefined()
    }),
    runs,
  )
})

/** Requires all properties, so that many schemas are in OpenAI's subset. */
function withAllRequired(text: string): string {
  return JSON.stringify(JSON.parse(text), (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('additionalProperties' in value)) return value
    const { properties = {} } = value as { properties?: object }
    return { ...value, properties, required: Object.keys(properties) }
  })
}

describe('the schema that Gemini gets for a response', () => {
  test('is always within its documented form', () => {
    fc.assert(
      fc.property(everything, (schema) => {
        const text = JSON.stringify(schema)
        const changed = toGeminiSchema(text)
        expect(refusalByGemini(JSON.parse(changed))).toBeUndefined()
        expect(toGeminiSchema(changed)).toBe(changed)
      }),
      runs,
    )
  })

  test('allows exactly the values of the original schema where nothing is recursive', () => {
    fc.assert(
      fc.property(schemas({ constraints: true }), fc.nat(), (schema, seed) => {
        const { three: _, ...$defs } = schema['$defs'] as Record<string, unknown>
        const original = { ...schema, $defs }
        expect(
          wrongValue(original, JSON.parse(toGeminiSchema(JSON.stringify(original))), seed),
        ).toBeUndefined()
      }),
      compiled,
    )
  })
})

test("a schema in Google's form becomes JSON Schema with the same meaning, and stays as it is then", () => {
  fc.assert(
    fc.property(googleSchemas, ({ google, meant }) => {
      const { schema } = fromGoogleSchema(JSON.stringify(google))
      expect(JSON.parse(schema)).toEqual(meant)
      expect(fromGoogleSchema(schema)).toEqual({ schema, isMoreThanSpelling: false })
    }),
    runs,
  )
})
