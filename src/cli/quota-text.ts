import type { QuotaDisplay } from '../management/gateway-status.ts'

/** Formats quota units with their value: `500000 ($1.00)`; units alone if the display is TOKENS. */
export function quotaText(
  quota: number,
  { display, quota_per_unit, usd_exchange_rate }: QuotaDisplay,
): string {
  if (display === 'TOKENS') return String(quota)
  const amount = (quota / quota_per_unit) * (display === 'CNY' ? usd_exchange_rate : 1)
  const format = new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency: display,
    currencyDisplay: 'narrowSymbol',
    maximumFractionDigits: 6,
  })
  return `${quota} (${format.format(amount)})`
}
