import type { WhatIfQuestion } from '../../api/what-if.ts'
import { withoutGroups } from '../../components/money.ts'
import { startOfMonth } from '../../components/time.ts'

/** The kinds of changes that can be assumed, in the order of their buttons. */
export const CHANGE_KINDS = ['price', 'ratio', 'model'] as const

/** An assumed change as it is typed; each kind has its own fields. */
export type WhatIfChange =
  | {
      readonly kind: 'price'
      readonly model: string
      readonly input: string
      readonly output: string
      readonly cached: string
    }
  | { readonly kind: 'ratio'; readonly group: string; readonly ratio: string }
  | { readonly kind: 'model'; readonly from: string; readonly to: string }

/** For each kind of change, the empty values with which its inputs begin. */
export const NEW_CHANGES: Readonly<Record<(typeof CHANGE_KINDS)[number], WhatIfChange>> = {
  price: { kind: 'price', model: '', input: '', output: '', cached: '' },
  ratio: { kind: 'ratio', group: '', ratio: '' },
  model: { kind: 'model', from: '', to: '' },
}

/** The periods that can be chosen. */
export const WHAT_IF_PERIODS = ['7d', '30d', '90d', 'month', 'last-month'] as const

/** The name of a period. */
export type WhatIfPeriod = (typeof WHAT_IF_PERIODS)[number]

const DAY_S = 86_400

/** The request for the typed changes; changes without a name are left out. */
export function whatIfQuestionOf(
  period: WhatIfPeriod,
  changes: readonly WhatIfChange[],
  nowMs: number,
  timeZone: string,
): WhatIfQuestion {
  const prices: Record<string, Record<string, string>> = {}
  const ratios: Record<string, string> = {}
  const models: Record<string, string> = {}
  for (const one of changes) {
    if (one.kind === 'price' && one.model !== '') {
      const { input, output, cached } = one
      const typed = { input: withoutGroups(input), output: withoutGroups(output) }
      prices[one.model] = cached.trim() === '' ? typed : { ...typed, cache_read: withoutGroups(cached) }
    }
    if (one.kind === 'ratio' && one.group !== '') ratios[one.group] = withoutGroups(one.ratio)
    if (one.kind === 'model' && one.from !== '' && one.to !== '') models[one.from] = one.to
  }
  return { ...rangeOf(period, Math.floor(nowMs / 1000), timeZone), change: { prices, ratios, models } }
}

function rangeOf(period: WhatIfPeriod, nowS: number, timeZone: string): { from: number; to: number } {
  const month = startOfMonth(nowS, timeZone)
  switch (period) {
    case 'month':
      return { from: month, to: nowS + 1 }
    case 'last-month':
      return { from: startOfMonth(month - 1, timeZone), to: month }
    case '7d':
    case '30d':
    case '90d':
      return { from: nowS - Number.parseInt(period, 10) * DAY_S, to: nowS + 1 }
  }
}
