import type { VendorService } from './vendor-service.ts'

/** Models for text and images; speech and live sessions have no tiers. */
const TIERED = /gemini-(?:2\.5|[3-9])(?!\S*-(?:tts|live|native-audio))/

/** The Gemini API and Vertex AI. `fast` is also called `priority`. */
export const GOOGLE: VendorService = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: TIERED },
    { tier: 'batch', factor: '0.5', has: /gemini-(?:[2-9]|embedding)/ },
    { tier: 'fast', factor: '1.8', has: TIERED },
  ],
  regions: [],
  source: 'ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-23',
}
