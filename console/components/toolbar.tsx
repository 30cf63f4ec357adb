import type { ReactNode } from 'react'
import classes from './toolbar.module.css'

/** Filters above a table. */
export function Toolbar({ children }: { readonly children: ReactNode }) {
  return <div className={classes['toolbar']}>{children}</div>
}
