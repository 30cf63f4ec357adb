import { type Fields, fields, list, string } from './fields.ts'

const MAX_STEPS = 16

/**
 * Resolves references and alternatives of a schema: follows `$ref` within the document, takes the first
 * alternative other than null, and merges the members next to them or in `allOf`.
 */
export function resolveSchema(schema: Fields, root: Fields): Fields {
  let found = schema
  for (let step = 0; step < MAX_STEPS; step++) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = found
    if (string($ref).startsWith('#'))
      found = merged(target(string($ref), root), { ...rest, ...defined({ anyOf, oneOf, allOf }) })
    else if (list(allOf).length > 0)
      found = [...list(allOf).map(fields), defined({ anyOf, oneOf })].reduce(merged, rest)
    else if (list(anyOf ?? oneOf).length > 0)
      found = merged(rest, alternative(list(anyOf ?? oneOf).map(fields), root))
    else return found
  }
  return {}
}

function alternative(all: readonly Fields[], root: Fields): Fields {
  const isNull = ({ type, const: constant }: Fields): boolean => type === 'null' || constant === null
  const followed = all.map((one) => (string(one.$ref).startsWith('#') ? target(string(one.$ref), root) : one))
  return followed.find((one) => !isNull(one)) ?? followed[0] ?? {}
}

function target(path: string, root: Fields): Fields {
  let found: unknown = root
  for (const part of path.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Array.isArray(found) ? list(found)[Number(name)] : fields(found)[name]
  }
  return fields(found)
}

/** Merges two schemas: members of both, required by either. */
function merged(one: Fields, other: Fields): Fields {
  const properties = { ...fields(one.properties), ...fields(other.properties) }
  const required = [...list(one.required), ...list(other.required)]
  const all = [...list(one.allOf), ...list(other.allOf)]
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
