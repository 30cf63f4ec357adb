import type { ReactNode } from 'react'
import classes from './empty-state.module.css'

/** Shown instead of an empty list: a sentence, and what to do next. */
export function EmptyState({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div className={classes['empty']}>
      <p>{text}</p>
      {children}
    </div>
  )
}
