import type { VendorService } from './vendor-service.ts'

/** OpenAI and Azure OpenAI. `fast` is also called `priority`. */
export const OPENAI: VendorService = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: /^(?:o3|o4-mini|gpt-[5-9])/ },
    { tier: 'batch', factor: '0.5', has: /^(?:gpt-|o\d|text-embedding)/ },
    { tier: 'fast', factor: '2', has: /^(?:o3|o4-mini|gpt-4o|gpt-4\.1|gpt-[5-9])/ },
    { tier: 'ultrafast', factor: '6', has: /^gpt-[6-9]/ },
  ],
  regions: [],
  source: 'openai.com/api/pricing, openai.com/api-fast-mode',
  date: '2026-11-23',
}
