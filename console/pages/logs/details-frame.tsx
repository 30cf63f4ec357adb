import type { ReactNode } from 'react'
import { CopyButton } from '../../components/copy-button.tsx'
import { DetailList, type DetailRows } from '../../components/detail-list.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './call-details.module.css'

/** The frame of the details of every call: model and time at the top, owner and id at the bottom. */
export function DetailsFrame({
  call,
  state,
  charge,
  rows,
  children,
}: {
  readonly call: { readonly model_name: string; readonly created_at: number; readonly id: string }
  readonly state: ReactNode
  readonly charge?: ReactNode
  readonly rows: DetailRows
  readonly children: ReactNode
}) {
  const { call: texts } = useTexts()
  return (
    <>
      <p className={classes['head']}>
        <strong>{call.model_name}</strong>
        {state}
      </p>
      {charge}
      <p className={classes['when']}>
        <TimeText at={call.created_at} isWhole />
      </p>
      {children}
      <h3>{texts.ids}</h3>
      <DetailList rows={[...rows, [texts.callId, call.id]]} />
      <p className={classes['actions']}>
        <CopyButton label={texts.copyId} text={call.id} />
      </p>
    </>
  )
}
