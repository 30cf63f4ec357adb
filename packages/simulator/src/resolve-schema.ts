import { type Fields, asFields, asList, asString } from './fields.ts'

const MAX_STEPS = 16

/**
 * Resolves references and alternatives of a schema: follows `$ref` within the document, takes the first
 * alternative other than null, and merges the members next to them or in `allOf`.
 */
export function resolveSchema(schema: Fields, root: Fields): Fields {
  let found = schema
  for (let step = 0; step < MAX_STEPS; step++) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = found
    if (asString($ref).startsWith('#'))
      found = merged(target(asString($ref), root), { ...rest, ...defined({ anyOf, oneOf, allOf }) })
    else if (asList(allOf).length > 0)
      found = [...asList(allOf).map(asFields), defined({ anyOf, oneOf })].reduce(merged, rest)
    else if (asList(anyOf ?? oneOf).length > 0)
      found = merged(rest, alternative(asList(anyOf ?? oneOf).map(asFields), root))
    else return found
  }
  return {}
}

function alternative(all: readonly Fields[], root: Fields): Fields {
  const isNull = ({ type, const: constant }: Fields): boolean => type === 'null' || constant === null
  const followed = all.map((one) =>
    asString(one.$ref).startsWith('#') ? target(asString(one.$ref), root) : one,
  )
  return followed.find((one) => !isNull(one)) ?? followed[0] ?? {}
}

function target(path: string, root: Fields): Fields {
  let found: unknown = root
  for (const part of path.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Array.isArray(found) ? asList(found)[Number(name)] : asFields(found)[name]
  }
  return asFields(found)
}

/** Merges two schemas: members of both, required by either. */
function merged(one: Fields, other: Fields): Fields {
  const properties = { ...asFields(one.properties), ...asFields(other.properties) }
  const required = [...asList(one.required), ...asList(other.required)]
  const all = [...asList(one.allOf), ...asList(other.allOf)]
  return {
    ...one,
    ...other,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
    ...(all.length > 0 && { allOf: all }),
  }
}

function defined(members: Fields): Fields {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
