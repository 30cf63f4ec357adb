import type { ReactNode } from 'react'
import classes from './form-section.module.css'

/** A section of a form page: its name on the left, its fields on the right. */
export function FormSection({
  title,
  text,
  children,
}: {
  readonly title: string
  readonly text?: string
  readonly children: ReactNode
}) {
  return (
    <section aria-label={title} className={classes['section']}>
      <div>
        <h2>{title}</h2>
        {text !== undefined && <p>{text}</p>}
      </div>
      <div className={classes['fields']}>{children}</div>
    </section>
  )
}
