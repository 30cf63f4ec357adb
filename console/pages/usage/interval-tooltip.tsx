import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { ChartData } from './chart-rows.ts'
import classes from './usage-page.module.css'

/** The values of one interval of a chart. For the parts of a bar, also their shares and their sum. */
export function IntervalTooltip({
  label,
  series,
  row,
  format,
  hasSum,
}: {
  readonly label: string
  readonly series: ChartData['series']
  readonly row: ChartData['rows'][number] | undefined
  readonly format: (value: number) => string
  readonly hasSum: boolean
}) {
  const { usage } = useTexts()
  const { percent } = useFormatters()
  if (!row) return null
  const parts = series.flatMap((one) => {
    const value = row[one.name] ?? null
    return value === null ? [] : [{ ...one, value }]
  })
  const sum = parts.reduce((total, { value }) => total + value, 0)
  return (
    // Not the table itself, whose caption would be outside of its border.
    <div className={classes['tooltip']}>
      <table>
        <caption>{label}</caption>
        <tbody>
          {parts.map(({ name, label: part, color, isDashed, value }) => (
            <tr key={name}>
              <th scope="row">
                <i style={{ borderColor: color }} data-dashed={isDashed} aria-hidden />
                {part}
              </th>
              <td>{format(value)}</td>
              {hasSum && <td>{percent(sum === 0 ? 0 : value / sum)}</td>}
            </tr>
          ))}
        </tbody>
        {hasSum && (
          <tfoot>
            <tr>
              <th scope="row">{usage.sum}</th>
              <td>{format(sum)}</td>
              <td />
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  )
}
