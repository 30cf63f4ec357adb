import { Button, Select } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { managedModelsQuery } from '../../api/models.ts'
import { requestWhatIf, type WhatIfResult } from '../../api/what-if.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { ChangeRow } from './change-row.tsx'
import {
  CHANGE_KINDS,
  NEW_CHANGES,
  type WhatIfPeriod,
  WHAT_IF_PERIODS,
  whatIfQuestionOf,
  type WhatIfChange,
} from './what-if-changes.ts'
import classes from './what-if-page.module.css'

/**
 * Shows what the calls of a period would have cost with other prices, ratios or models. Nothing is changed.
 */
export function WhatIfPage() {
  const { whatIf } = useTexts()
  const { profile, groups } = useSignedInAccount()
  const { timeZone } = useFormatters()
  const [search, setSearch] = useSearchState()
  const period = WHAT_IF_PERIODS.find((one) => one === search['period']) ?? '30d'
  const { data: models = [] } = useQuery(managedModelsQuery(profile.id))
  const [changes, setChanges] = useState<readonly WhatIfChange[]>([])
  const [result, setResult] = useState<WhatIfResult>()
  const { run, isRunning, error } = useAction(async () => {
    setResult(undefined)
    setResult(await requestWhatIf(whatIfQuestionOf(period, changes, Date.now(), timeZone)))
  })
  const groupNames = [...new Set([...models.flatMap((one) => one.groups), ...Object.keys(groups)])]
  return (
    <>
      <PageHead title={whatIf.title} />
      <p className={classes['hint']}>{whatIf.hint}</p>
      <form
        className={classes['form']}
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void run()
        }}
      >
        <Select
          label={whatIf.period}
          allowDeselect={false}
          data={WHAT_IF_PERIODS.map((value) => ({ value, label: whatIf.periods[value] }))}
          value={period}
          onChange={(value) => setSearch({ period: value as WhatIfPeriod })}
        />
        {changes.map((change, place) => (
          <ChangeRow
            key={place}
            change={change}
            models={models.map(({ model }) => model)}
            groups={groupNames}
            onChange={(typed) => setChanges(changes.with(place, typed))}
            onRemove={() => setChanges(changes.toSpliced(place, 1))}
          />
        ))}
        <div className={classes['buttons']}>
          {CHANGE_KINDS.map((kind) => (
            <Button
              key={kind}
              variant="default"
              leftSection={<IconPlus size={16} aria-hidden />}
              onClick={() => setChanges([...changes, NEW_CHANGES[kind]])}
            >
              {whatIf.add[kind]}
            </Button>
          ))}
          <Button type="submit" loading={isRunning}>
            {whatIf.calculate}
          </Button>
        </div>
      </form>
      <RefusalMessage error={error} />
      {result && <Result result={result} />}
    </>
  )
}

function Result({ result }: { readonly result: WhatIfResult }) {
  const { whatIf } = useTexts()
  const { money, exact, count } = useFormatters()
  const columns = useColumns()
  const { difference, left_out: leftOut, by_model: rows, calls, charged, would_be } = result
  return (
    <>
      <p
        role="status"
        aria-label={whatIf.difference}
        className={classes['difference']}
        title={exact(difference)}
      >
        {whatIf.differenceOf(`${difference > 0 ? '+' : ''}${money(difference)}`)}
      </p>
      {leftOut.calls > 0 && (
        <p className={classes['hint']}>
          {whatIf.leftOut(leftOut.calls, count(leftOut.calls), money(leftOut.charged))}
        </p>
      )}
      {!result.exact && <p className={classes['hint']}>{whatIf.notExact}</p>}
      <DataTable
        label={whatIf.result}
        columns={columns}
        rows={rows}
        keyOf={({ model }) => model}
        foot={{ model: whatIf.all, calls, charged, would_be }}
      />
    </>
  )
}

function useColumns(): readonly Column<WhatIfResult['by_model'][number]>[] {
  const { whatIf } = useTexts()
  const { count } = useFormatters()
  return [
    { key: 'model', label: whatIf.model, phone: 'title', cell: ({ model }) => model },
    { key: 'calls', label: whatIf.calls, isNumber: true, cell: ({ calls }) => count(calls) },
    {
      key: 'charged',
      label: whatIf.charged,
      isNumber: true,
      cell: ({ charged }) => <MoneyText quota={charged} />,
    },
    {
      key: 'would-be',
      label: whatIf.wouldBe,
      isNumber: true,
      cell: ({ would_be }) => <MoneyText quota={would_be} />,
    },
    {
      key: 'difference',
      label: whatIf.difference,
      isNumber: true,
      phone: 'value',
      cell: ({ charged, would_be }) => <MoneyText quota={would_be - charged} />,
    },
  ]
}
