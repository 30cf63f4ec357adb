/** Freezes a value deeply, including maps and sets, and returns it. The value must not be cyclic. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (value instanceof Map || value instanceof Set) {
    for (const part of value instanceof Map ? [...value.keys(), ...value.values()] : value) deepFreeze(part)
    for (const method of ['set', 'add', 'delete', 'clear']) {
      if (method in value) Object.defineProperty(value, method, { value: refuse })
    }
  }
  for (const part of Object.values(value)) deepFreeze(part)
  return Object.freeze(value)
}

function refuse(): never {
  throw new TypeError('the configuration is not changed but replaced')
}
