import type { Call } from '../../api/calls.ts'
import { useFormats } from '../../parts/session.tsx'
import { useTexts } from '../../texts/use-texts.tsx'
import classes from './call-details.module.css'

/** The counts that a call was charged by, and the charge. */
export function CostLines({ call }: { readonly call: Call }) {
  const texts = useTexts()
  const { lines } = texts.call
  const { count, money, exact } = useFormats()
  const written = call.cache_write_5m_tokens + call.cache_write_1h_tokens
  const rows: readonly { readonly label: string; readonly value: number; readonly isPart?: true }[] = [
    { label: lines.input, value: call.prompt_tokens - call.cached_tokens - written },
    { label: lines.cached, value: call.cached_tokens },
    { label: lines.cacheWrite, value: written },
    { label: lines.output, value: call.completion_tokens },
    { label: lines.reasoning, value: call.reasoning_tokens, isPart: true },
    { label: lines.webSearches, value: call.web_searches },
  ]
  return (
    <table className={classes['lines']} aria-label={texts.call.table}>
      <thead>
        <tr>
          <th scope="col">{texts.call.kind}</th>
          <th scope="col">{texts.call.count}</th>
        </tr>
      </thead>
      <tbody>
        {rows
          .filter(({ value, label }) => value > 0 || label === lines.input || label === lines.output)
          .map(({ label, value, isPart }) => (
            <tr key={label} data-part={isPart}>
              <th scope="row">{label}</th>
              <td>{count(value)}</td>
            </tr>
          ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{texts.call.charge}</th>
          <td title={texts.call.exact(exact(call.quota))}>{money(call.quota)}</td>
        </tr>
      </tfoot>
    </table>
  )
}
