import type { VendorServicePrices } from './vendor-service.ts'

/**
 * Matches the models that Amazon's page of service tiers lists. Claude, Llama, Titan and the small Nova
 * models have none.
 */
const TIERED =
  /(?:^|\.)(?:openai\.gpt-oss|qwen\.qwen3|deepseek\.v3|amazon\.nova-(?:pro|premier|2-lite)|google\.gemma-3|minimax\.|mistral\.(?:magistral|ministral|voxtral|mistral-large-3)|moonshot\.|nvidia\.nemotron)/

/** Amazon Bedrock's prices of service tiers. The tier `fast` is called `priority` there. */
export const BEDROCK: VendorServicePrices = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: TIERED },
    { tier: 'fast', factor: '1.75', has: TIERED },
  ],
  regions: [],
  source:
    'aws.amazon.com/bedrock/pricing, docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html',
  date: '2026-11-23',
}
