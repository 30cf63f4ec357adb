/** Where a vendor published data, and when the built-in data were last compared with them. */
export interface DataSource {
  readonly source: string
  /** The day of the comparison, as YYYY-MM-DD. */
  readonly date: string
  /** The reason, if the data differ from @pydantic/genai-prices. */
  readonly differs?: string
}

/**
 * A vendor's published price of a service tier. It applies to models whose declared price does not state one.
 */
export interface VendorTierPrice {
  readonly tier: string
  /** Number that multiplies the token prices, as decimal text. */
  readonly factor: string
  /** Set if tokens that are read from a prompt cache cost what they cost without the tier. */
  readonly keepsCacheRead?: true
  /** Matches the models to which the factor applies, by the vendor's names; all if absent. */
  readonly models?: RegExp
  /**
   * Matches the models that are known to have the tier. Only for these does the reservation of quota include
   * the tier's price.
   */
  readonly has: RegExp
}

/** A vendor's published price of a region. */
export interface VendorRegionPrice {
  readonly region: string
  readonly factor: string
  /**
   * Matches the models that are known to be priced by region. Only for these does the reservation of quota
   * include the region's price.
   */
  readonly has: RegExp
}

/** A vendor's published prices of service tiers and regions, with their source. */
export interface VendorServicePrices extends DataSource {
  readonly tiers: readonly VendorTierPrice[]
  readonly regions: readonly VendorRegionPrice[]
}
