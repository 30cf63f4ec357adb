import type { AllowedField } from './allowed-field.ts'

/** Settings of an upstream that decide what is sent to it. */
export interface UpstreamSettings {
  /** Address with the version, without a slash at the end: `https://api.example.com/v1`. */
  readonly base_url: string
  /** Requested model → the upstream's name for it. */
  readonly model_mapping: ReadonlyMap<string, string>
  /** Fields that are sent although not every upstream of the protocol accepts them. */
  readonly allow: ReadonlySet<AllowedField>
  /** Whether `store` is removed from requests. */
  readonly disable_store: boolean
  /** Whether requests are sent without removing fields that are not allowed. */
  readonly pass_through: boolean
}

/** Whether an address is OpenRouter's, which accepts the fields of all its providers. */
export function isRouter(base_url: string): boolean {
  return /(?:^|\.)openrouter\.ai$/.test(new URL(base_url).hostname)
}
