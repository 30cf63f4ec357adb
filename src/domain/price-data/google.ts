import type { VendorService } from './vendor-service.ts'

/** The Gemini API and Vertex AI. `fast` is also called `priority`. */
export const GOOGLE: VendorService = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: /gemini-(?:2\.5|[3-9])/ },
    { tier: 'batch', factor: '0.5', has: /gemini-[2-9]/ },
    { tier: 'fast', factor: '1.8', has: /gemini-(?:2\.5|[3-9])/ },
  ],
  regions: [],
  source: 'ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-23',
}
