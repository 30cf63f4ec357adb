import type { VendorServicePrices } from './vendor-service.ts'

/** Matches models for text and images; models for speech and live sessions have no service tiers. */
const TIERED = /gemini-(?:2\.5|[3-9])(?!\S*-(?:tts|live|native-audio))/

/** Prices of service tiers of the Gemini API and Vertex AI. The tier `fast` is called `priority` there. */
export const GOOGLE: VendorServicePrices = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: TIERED },
    { tier: 'batch', factor: '0.5', keepsCacheRead: true, has: /gemini-(?:[2-9]|embedding)/ },
    { tier: 'fast', factor: '1.8', has: TIERED },
  ],
  regions: [],
  source: 'ai.google.dev/gemini-api/docs/pricing, ai.google.dev/gemini-api/docs/batch-api',
  date: '2026-11-23',
}
