import type { ReactNode } from 'react'
import classes from './empty.module.css'

/** Shown instead of an empty list: a sentence, and what to do next. */
export function Empty({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div className={classes['empty']}>
      <p>{text}</p>
      {children}
    </div>
  )
}
