import type { DataSource } from './vendor-service.ts'

/** Context lengths of a vendor's models, in tokens. */
interface VendorContexts extends DataSource {
  readonly models: ReadonlyMap<string, number>
}

/** Context lengths that @pydantic/genai-prices does not state, by vendor. */
export const CONTEXT_LENGTHS: ReadonlyMap<string, VendorContexts> = new Map([
  [
    'google',
    {
      source: 'ai.google.dev/gemini-api/docs/models',
      date: '2026-11-23',
      models: new Map([
        ['gemini-2.5-pro', 1_048_576],
        ['gemini-3.1-pro-preview', 1_048_576],
        ['gemini-embedding-001', 2_048],
      ]),
    },
  ],
])
