import type { ReactNode } from 'react'
import classes from './page-section.module.css'

/** A part of a page under a heading, which has its distance from what stands above it. */
export function PageSection({
  title,
  hint,
  children,
}: {
  readonly title: string
  readonly hint?: string
  readonly children: ReactNode
}) {
  return (
    <section aria-label={title} className={classes['section']}>
      <h2>{title}</h2>
      {hint !== undefined && <PageHint>{hint}</PageHint>}
      {children}
    </section>
  )
}

/** A sentence about a page or a part of it. */
export function PageHint({ children }: { readonly children: ReactNode }) {
  return <p className={classes['hint']}>{children}</p>
}
