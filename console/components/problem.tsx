import { IconAlertTriangle } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import classes from './problem.module.css'

/** A problem, which screen readers announce at once. */
export function Problem({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
  return (
    <div role="alert" className={classes['problem']}>
      <IconAlertTriangle size={16} aria-hidden />
      <div>
        {text}
        {children}
      </div>
    </div>
  )
}
