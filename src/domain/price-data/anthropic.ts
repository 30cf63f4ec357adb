import type { VendorServicePrices } from './vendor-service.ts'

/** Matches models from Opus 4.6 and Sonnet 4.6 on, including the forms of their names in clouds. */
const FROM_OPUS_4_6 =
  /claude-(?:opus-(?:4-[6-9]|[5-9])|sonnet-(?:4-[6-9]|[5-9])|haiku-(?:4-[6-9]|[5-9])|fable)/

/** Anthropic's prices of service tiers and regions. The tier `fast` is requested with `speed: fast`. */
export const ANTHROPIC: VendorServicePrices = {
  tiers: [
    { tier: 'batch', factor: '0.5', has: /claude/ },
    { tier: 'fast', factor: '6', models: /opus-4-[67]/, has: /opus-4-[67]/ },
    { tier: 'fast', factor: '2', has: /claude-(?:opus-(?:4-[89]|[5-9])|fable)/ },
  ],
  regions: [{ region: 'us', factor: '1.1', has: FROM_OPUS_4_6 }],
  source: 'platform.claude.com/docs/en/about-claude/pricing',
  date: '2026-11-23',
}
