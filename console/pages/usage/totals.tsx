import type { UsagePoint } from '../../api/usage.ts'
import { Figures } from '../../components/figures.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { relativeChange, tokensOfUsagePoint } from './usage-sums.ts'

/** Cost, calls, tokens and errors of a period, and their change since the previous period. */
export function Totals({ now, before }: { readonly now: UsagePoint; readonly before: UsagePoint }) {
  const { usage, tag } = useTexts()
  const { money, exact, count } = useFormatters()
  const percent = new Intl.NumberFormat(tag, {
    style: 'percent',
    signDisplay: 'exceptZero',
    maximumFractionDigits: 0,
  })
  const noteOf = (field: (point: UsagePoint) => number): string => {
    const change = relativeChange(field(now), field(before), before.requests + before.failed)
    if (change !== undefined) return usage.change(percent.format(change))
    return field(before) === 0 ? usage.nothingBefore : usage.littleBefore
  }
  return (
    <div role="group" aria-label={usage.totals}>
      <Figures
        figures={[
          {
            label: usage.spend,
            value: money(now.quota),
            title: exact(now.quota),
            note: noteOf(({ quota }) => quota),
          },
          { label: usage.calls, value: count(now.requests), note: noteOf(({ requests }) => requests) },
          { label: usage.tokens, value: count(tokensOfUsagePoint(now)), note: noteOf(tokensOfUsagePoint) },
          { label: usage.errors, value: count(now.failed), note: noteOf(({ failed }) => failed) },
        ]}
      />
    </div>
  )
}
