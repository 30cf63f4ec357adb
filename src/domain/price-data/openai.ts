import type { VendorServicePrices } from './vendor-service.ts'

/**
 * Matches the models that OpenAI's page of flex processing lists; of the o series, only those without
 * suffixes.
 */
const FLEX = /^(?:o3|o4-mini|gpt-[5-9](?!\S*-(?:codex|image)))(?!-(?:deep|mini|pro))/

/**
 * Matches the models that OpenAI's page of fast mode (formerly priority processing) lists: all since GPT-4o
 * except nano and pro models of the fifth generation, and models for audio and images.
 */
const FAST =
  /^(?:o3(?!-(?:deep|mini|pro))|o4-mini(?!-deep)|gpt-4o(?!\S*-(?:audio|realtime|transcribe|tts|search))|gpt-4\.1|gpt-5(?!\S*-(?:nano|pro|image))|gpt-[6-9](?!\S*-(?:image|audio)))/

/** Prices of service tiers of OpenAI and Azure OpenAI. The tier `fast` is also called `priority`. */
export const OPENAI: VendorServicePrices = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: FLEX },
    { tier: 'batch', factor: '0.5', has: /^(?:gpt-|o\d|text-embedding)/ },
    { tier: 'fast', factor: '2', has: FAST },
    { tier: 'ultrafast', factor: '6', has: /^gpt-(?:5\.6-sol|6(?:\.\d+)?-astra|6\.\d+-sol)/ },
  ],
  regions: [],
  source:
    'openai.com/api/pricing, openai.com/api-fast-mode, developers.openai.com/api/docs/guides/ultrafast-mode',
  date: '2026-11-23',
}
