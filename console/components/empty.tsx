import type { ReactNode } from 'react'
import classes from './empty.module.css'

/** Shown instead of rows: one sentence and the next step. */
export function Empty({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div className={classes['empty']}>
      <p>{text}</p>
      {children}
    </div>
  )
}
