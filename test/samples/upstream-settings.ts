import type { UpstreamSettings } from '@sluice/wire/upstream-settings'

/** Settings of an upstream without permissions except the given ones. */
export function settingsOf(fields: Partial<UpstreamSettings>): UpstreamSettings {
  return {
    base_url: 'http://127.0.0.1/v1',
    model_mapping: new Map(),
    allow: new Set(),
    disable_store: false,
    pass_through: false,
    ...fields,
  }
}
