import type { Attributes } from '@opentelemetry/api'
import type { AttributeValues } from '../gen-ai.ts'

/** Removes the attributes whose value is undefined. */
export function definedAttributes(values: AttributeValues): Attributes {
  const attributes: Attributes = {}
  for (const [name, value] of Object.entries(values)) if (value !== undefined) attributes[name] = value
  return attributes
}
