const PREFIX = 'models/'

/** Name of a model without the prefix `models/` that paths and answers may have. */
export function modelOf(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name
}
