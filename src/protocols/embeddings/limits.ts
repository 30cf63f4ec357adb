import type { ScanLimits } from '../json/json-scan.ts'

/** Limits of a request: 300,000 token ids may be in one. */
export const EMBEDDINGS_LIMITS: ScanLimits = { depth: 128, nodes: 320_000, members: 1_000 }
