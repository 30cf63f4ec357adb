/**
 * Time after which unused permits are returned: absolute, as a share of the window, and the share of the
 * limit below which free permits are scarce and return sooner.
 */
export const IDLE_MS = 5_000
export const IDLE_SHARE = 1 / 8
export const SCARCE_SHARE = 1 / 4
/** Longest delay before use is reported. */
export const REPORT_MS = 100
/** Time that the permits in stock should last at the recent rate of use. */
export const STOCK_MS = 200
/** Bounds of the time for which a refusal holds before the other nodes are asked again. */
export const RETRY_MS = { min: 5, max: 1_000 }
/** Time after which a node checks that the window has what it reported. */
export const VERIFY_MS = 500
/** Age up to which a snapshot decides without asking. */
export const FRESH_MS = 1_000
