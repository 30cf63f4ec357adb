import type { VendorService } from './vendor-service.ts'

/** Amazon Bedrock. `fast` is also called `priority`. */
export const BEDROCK: VendorService = {
  tiers: [
    { tier: 'flex', factor: '0.5', has: /./ },
    { tier: 'fast', factor: '1.75', has: /./ },
  ],
  regions: [],
  source: 'aws.amazon.com/bedrock/pricing',
  date: '2026-11-23',
}
