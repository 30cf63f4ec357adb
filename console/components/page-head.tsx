import { type ReactNode, useEffect } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './page-head.module.css'

/** The heading of a page with its primary action, and the title of the window. */
export function PageHead({
  title,
  above,
  beside,
  children,
}: {
  readonly title: string
  /** A link to the parent page. */
  readonly above?: ReactNode
  /** A state to show beside the heading. */
  readonly beside?: ReactNode
  readonly children?: ReactNode
}) {
  const { product } = useTexts()
  useEffect(() => {
    document.title = `${title} – ${product}`
  }, [title, product])
  return (
    <header className={classes['head']}>
      {above !== undefined && <div className={classes['above']}>{above}</div>}
      <h1 tabIndex={-1}>{title}</h1>
      {beside}
      <div className={classes['actions']}>{children}</div>
    </header>
  )
}
