export type Json = string | number | boolean | null | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value as an object; empty if it is not one. */
export function asObject(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}
