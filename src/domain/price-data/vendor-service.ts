/** Where a vendor stated something, and when. */
export interface DataSource {
  readonly source: string
  /** YYYY-MM-DD. */
  readonly date: string
  /** Why it differs from @pydantic/genai-prices, where it does. */
  readonly differs?: string
}

/** A vendor's price of a tier of service, for models whose declared price does not state one. */
export interface ListedTier {
  readonly tier: string
  /** Multiplies the prices of tokens. */
  readonly factor: string
  /** Models to which the factor applies, by the vendor's names; all if absent. */
  readonly models?: RegExp
  /** Models that are known to have the tier. Holds cover it for these alone. */
  readonly has: RegExp
}

/** A vendor's price of a region. */
export interface ListedRegion {
  readonly region: string
  readonly factor: string
  /** Models that are known to be priced by region. Holds cover it for these alone. */
  readonly has: RegExp
}

/** Defaults of a vendor, with their source and the date on which it stated them. */
export interface VendorService extends DataSource {
  readonly tiers: readonly ListedTier[]
  readonly regions: readonly ListedRegion[]
}
