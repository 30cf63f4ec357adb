/** A schema as a provider reads it. */
type Fields = Readonly<Record<string, unknown>>

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null

/**
 * Why Anthropic and Bedrock would refuse a schema for structured output; undefined if they would not.
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations
 */
export function refusalByClaude(root: unknown): string | undefined {
  return refusal(root, '#', new Set())

  function refusal(value: unknown, path: string, open: ReadonlySet<string>): string | undefined {
    const schema = fieldsOf(value)
    if (!schema) return `${path}: not an object`
    const { type, $ref } = schema
    if ($ref !== undefined) {
      if (typeof $ref !== 'string' || !/^#\/(?:\$defs|definitions)\/[^/]+$/.test($ref))
        return `${path}: not a reference to a definition`
      if (Object.keys(schema).length > 1) return `${path}: members beside a reference`
      if (open.has($ref)) return `${path}: recursive`
      const [, holder = '', name = ''] = $ref.split('/')
      const target = fieldsOf(fieldsOf(root)?.[holder])?.[name]
      return target === undefined ? `${path}: leads nowhere` : refusal(target, $ref, new Set([...open, $ref]))
    }
    const types = [type].flat()
    if (
      (types.includes('object') || schema['properties'] !== undefined) &&
      schema['additionalProperties'] !== false
    )
      return `${path}: not closed`
    for (const [keyword, one] of Object.entries(schema)) {
      const at = `${path}/${keyword}`
      switch (keyword) {
        case 'type':
        case 'description':
        case 'title':
        case 'default':
          break
        case 'required':
          if (!Array.isArray(one)) return at
          break
        case 'additionalProperties':
          if (one !== false) return at
          break
        case 'enum':
          if (!Array.isArray(one) || !one.every(isScalar)) return at
          break
        case 'const':
          if (!isScalar(one)) return at
          break
        case 'format':
          if (!/^(?:date-time|time|date|duration|email|hostname|uri|ipv4|ipv6|uuid)$/.test(String(one)))
            return at
          break
        case 'minItems':
          if (one !== 0 && one !== 1) return at
          break
        case 'pattern':
          if (/\(\?|\\[bB\d]|\{\d{3,}/.test(String(one))) return at
          break
        case 'items': {
          const why = refusal(one, at, open)
          if (why !== undefined) return why
          break
        }
        case 'properties':
        case '$defs':
        case 'definitions':
          for (const [name, inner] of Object.entries(fieldsOf(one) ?? {})) {
            const pointer = `#/${keyword}/${name}`
            const within = keyword === 'properties' ? open : new Set([pointer])
            const why = refusal(inner, `${at}/${name}`, within)
            if (why !== undefined) return why
          }
          break
        case 'anyOf':
        case 'allOf':
          if (!Array.isArray(one) || one.length === 0) return at
          for (const [index, inner] of one.entries()) {
            if (keyword === 'allOf' && fieldsOf(inner)?.['$ref'] !== undefined)
              return `${at}/${index}: reference`
            const why = refusal(inner, `${at}/${index}`, open)
            if (why !== undefined) return why
          }
          break
        default:
          return at
      }
    }
    return undefined
  }
}

/**
 * Why OpenAI would refuse a schema with `strict: true`; undefined if it would not.
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function refusalByOpenAi(root: unknown): string | undefined {
  const top = fieldsOf(root)
  if (top?.['type'] !== 'object' || top['anyOf'] !== undefined) return 'the root is not an object'
  return refusal(root, '#', 1)

  function refusal(value: unknown, path: string, level: number): string | undefined {
    const schema = fieldsOf(value)
    if (!schema) return `${path}: not an object`
    if (level > 10) return `${path}: too deep`
    if (schema['$ref'] !== undefined)
      return Object.keys(schema).length > 1 ? `${path}: beside a reference` : undefined
    if (schema['type'] === undefined && schema['anyOf'] === undefined) return `${path}: no type`
    for (const keyword of [
      'allOf',
      'oneOf',
      'not',
      'if',
      'patternProperties',
      'minLength',
      'uniqueItems',
      'minProperties',
    ])
      if (schema[keyword] !== undefined) return `${path}/${keyword}`
    const properties = fieldsOf(schema['properties'])
    if ([schema['type']].flat().includes('object') || properties) {
      const names = Object.keys(properties ?? {}).sort()
      const required = [...((schema['required'] ?? []) as string[])].sort()
      if (schema['additionalProperties'] !== false) return `${path}: not closed`
      if (names.join('\n') !== required.join('\n')) return `${path}: not all are required`
    }
    const inner = [
      ...Object.entries(properties ?? {}),
      ...Object.entries(fieldsOf(schema['$defs']) ?? {}),
      ...(schema['items'] === undefined ? [] : [['items', schema['items']] as const]),
      ...((schema['anyOf'] ?? []) as unknown[]).map((one, index) => [`anyOf/${index}`, one] as const),
    ]
    return inner
      .map(([name, one]) => refusal(one, `${path}/${name}`, name.startsWith('anyOf') ? level : level + 1))
      .find((why) => why !== undefined)
  }
}

/** Why a provider would refuse the top of a tool's schema; undefined if it would not. */
export function refusalOfTool(root: unknown): string | undefined {
  const top = fieldsOf(root)
  if (top?.['type'] !== 'object') return 'not of an object'
  return ['anyOf', 'oneOf', 'allOf', '$ref'].find((keyword) => top[keyword] !== undefined)
}

/**
 * Why Gemini would refuse a schema for a response; undefined if it would not. Cyclic references may only be used
 * within properties that are not required. https://ai.google.dev/api/generate-content
 */
export function refusalByGemini(root: unknown): string | undefined {
  return refusal(root, '#', new Map(), false)

  /** `open`: the definitions in which the schema is, and whether an optional property has been entered since. */
  function refusal(
    value: unknown,
    path: string,
    open: ReadonlyMap<string, boolean>,
    isOptional: boolean,
  ): string | undefined {
    if (Array.isArray(value)) {
      return value
        .map((one, index) => refusal(one, `${path}/${index}`, open, isOptional))
        .find((why) => why !== undefined)
    }
    const schema = fieldsOf(value)
    if (!schema) return undefined
    const within = new Map([...open].map(([name, was]) => [name, was || isOptional]))
    const { $ref } = schema
    if (typeof $ref === 'string') {
      if (Object.keys(schema).some((name) => !name.startsWith('$'))) return `${path}: beside a reference`
      if (within.get($ref) === false) return `${path}: recursive`
      if (within.has($ref)) return undefined
      const [, holder = '', name = ''] = $ref.split('/')
      return refusal(
        fieldsOf(fieldsOf(root)?.[holder])?.[name],
        $ref,
        new Map([...within, [$ref, false]]),
        false,
      )
    }
    const required = new Set((schema['required'] ?? []) as string[])
    for (const [name, one] of Object.entries(fieldsOf(schema['properties']) ?? {})) {
      const why = refusal(one, `${path}/${name}`, within, !required.has(name))
      if (why !== undefined) return why
    }
    return ['items', 'anyOf', 'oneOf', 'allOf', 'additionalProperties']
      .map((keyword) => refusal(schema[keyword], `${path}/${keyword}`, within, false))
      .find((why) => why !== undefined)
  }
}
