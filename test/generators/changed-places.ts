/** A document, and where it differs from the given one. */
export interface ChangedDocument {
  readonly where: string
  readonly body: unknown
}

/** All documents that differ from the given one in one string, one name, or a member more. */
export function* changedPlaces(
  value: unknown,
  change: (given: string) => unknown,
  path = '',
): Generator<ChangedDocument> {
  if (typeof value === 'string') yield { where: path, body: change(value) }
  else if (Array.isArray(value)) {
    for (const [at, one] of value.entries())
      for (const { where, body } of changedPlaces(one, change, `${path}[${at}]`))
        yield { where, body: value.with(at, body) }
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, one] of Object.entries(value))
      for (const { where, body } of changedPlaces(one, change, `${path}.${name}`))
        yield { where, body: { ...value, [name]: body } }
    yield { where: `${path}.x_note`, body: { ...value, x_note: { deep: [change('')] } } }
    yield { where: `${path}.{}`, body: { ...value, [String(change('x'))]: 1 } }
  }
}
