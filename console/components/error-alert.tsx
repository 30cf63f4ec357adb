import { IconAlertTriangle } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import classes from './error-alert.module.css'

/** Shows a problem, which screen readers announce at once. */
export function ErrorAlert({ text, children }: { readonly text: string; readonly children?: ReactNode }) {
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
