import { TextInput } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { useState } from 'react'
import type { CallDetail } from '../../api/calls.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import type { Answer } from './answer.ts'
import { settledCallOfAnswer, tokensPerSecond } from './settled-call-of-answer.ts'
import classes from './exchange-view.module.css'

const USUAL_CALLS = '10000'
const DAYS = 30n
/** Matches a number of calls per day of at most nine digits, for which the cost can be computed exactly. */
const CALLS_A_DAY = /^\d{1,9}$/

interface ComparedCall {
  readonly answer: Answer
  readonly call: CallDetail | null | undefined
}

/**
 * Compares the answers to one question: their cost and times, and the cost of a month with a typed number of
 * calls per day.
 */
export function Comparison({ answers }: { readonly answers: readonly Answer[] }) {
  const { playground } = useTexts()
  const { profile } = useSignedInAccount()
  const [calls, setCalls] = useState(USUAL_CALLS)
  const found = useQueries({ queries: answers.map((answer) => settledCallOfAnswer(profile.id, answer)) })
  const rows = answers.map((answer, place): ComparedCall => ({ answer, call: found[place]?.data }))
  const columns = useColumns(calls, answers)
  return (
    <div className={classes['comparison']}>
      <TextInput
        type="number"
        label={playground.callsADay}
        min={0}
        step={1000}
        value={calls}
        onChange={({ currentTarget: { value } }) => setCalls(value)}
      />
      <DataTable
        label={playground.comparison}
        columns={columns}
        rows={rows}
        keyOf={({ answer: { model, protocol } }) => `${model} ${protocol}`}
      />
    </div>
  )
}

function useColumns(calls: string, answers: readonly Answer[]): readonly Column<ComparedCall>[] {
  const { playground } = useTexts()
  const { duration, count } = useFormatters()
  const areProtocolsNamed = new Set(answers.map(({ protocol }) => protocol)).size > 1
  const time = (milliseconds: number | undefined): string =>
    milliseconds === undefined ? playground.notKnown : duration(milliseconds)
  return [
    {
      key: 'model',
      label: playground.model,
      phone: 'title',
      cell: ({ answer: { model, protocol } }) =>
        areProtocolsNamed ? playground.answerOf(model, playground.protocols[protocol]) : model,
    },
    {
      key: 'cost',
      label: playground.cost,
      isNumber: true,
      cell: ({ call }) => (call ? <MoneyText quota={call.quota} /> : playground.notKnown),
    },
    {
      key: 'first',
      label: playground.firstToken,
      isNumber: true,
      cell: ({ answer }) => time(answer.firstMs),
    },
    { key: 'total', label: playground.total, isNumber: true, cell: ({ answer }) => time(answer.totalMs) },
    {
      key: 'speed',
      label: playground.tokensPerSecond,
      isNumber: true,
      cell: ({ answer, call }) => {
        const speed = call ? tokensPerSecond(answer, call.completion_tokens) : undefined
        return speed === undefined ? playground.notKnown : count(speed)
      },
    },
    {
      key: 'month',
      label: playground.perMonth,
      isNumber: true,
      phone: 'value',
      cell: ({ call }) =>
        call && CALLS_A_DAY.test(calls) ? (
          <MoneyText quota={String(BigInt(call.quota) * BigInt(calls) * DAYS)} />
        ) : (
          playground.notKnown
        ),
    },
  ]
}
